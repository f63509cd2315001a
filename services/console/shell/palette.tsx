import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { tellFailure } from '../base/announce.ts'
import { hrefOf } from '../base/router.ts'
import { Dialog } from '../parts/dialog.tsx'
import type { Goal } from '../parts/palette/goals.ts'
import { isPaletteOpen } from './keys.ts'
import { offered } from './pages.tsx'

/** The code of the search is loaded when the palette is opened for the first time. */
const search = signal<FunctionComponent<{ pages: readonly Goal[]; onGo(): void }> | undefined>(undefined)

/** Goes to a page, or to a thing that is found by its name or its id. */
export function Palette() {
  const isOpen = isPaletteOpen.value
  useEffect(() => {
    if (isOpen && !search.peek())
      import('../parts/palette/search.tsx').then(({ Search }) => (search.value = Search)).catch(tellFailure)
  }, [isOpen])
  const Search = search.value
  if (!isOpen || !Search) return null
  const close = () => (isPaletteOpen.value = false)
  return (
    <Dialog label="Go to" onClose={close}>
      <Search pages={pageGoals()} onGo={close} />
    </Dialog>
  )
}

const pageGoals = (): Goal[] =>
  offered().map(({ name, icon, path, key }) => ({ icon, text: name, hint: `g ${key}`, href: hrefOf(path) }))
