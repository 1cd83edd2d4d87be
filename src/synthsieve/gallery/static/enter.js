// The first visit: the key goes into this tab's storage, which no other port can read, and the token leaves the address bar.

sessionStorage.setItem("synthsieve-key", document.documentElement.dataset.key);
location.replace("/");
