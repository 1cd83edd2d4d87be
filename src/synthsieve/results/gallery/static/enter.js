// The first visit: store the key in this tab, where no other port can read it, and remove the token from the address bar.

sessionStorage.setItem("synthsieve-key", document.documentElement.dataset.key);
location.replace("/");
