// Loads the console when the frame of index.html has been painted: its scripts would hold that up. A page that nobody sees paints nothing.
if (document.hidden) load()
else requestAnimationFrame(() => setTimeout(load))

function load(): void {
  void import('./main.tsx')
}
