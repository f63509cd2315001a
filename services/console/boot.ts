// Loads the console after the frame of index.html was painted, because its scripts would delay this. A hidden page is never painted, so
// the console is loaded at once.
if (document.hidden) load()
else requestAnimationFrame(() => setTimeout(load))

function load(): void {
  void import('./main.tsx')
}
