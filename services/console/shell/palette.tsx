import { hrefOf } from '../base/router.ts'
import { lazy } from '../parts/lazy.tsx'
import type { Goal } from '../parts/palette/goals.ts'
import { isPaletteOpen } from './keys.ts'
import { offered } from './pages.tsx'

const Search = lazy(() => import('../parts/palette/search.tsx').then((loaded) => loaded.Search))

/** Goes to a page, or to a thing that is found by its name or its id. */
export function Palette() {
  return isPaletteOpen().value ? <Search pages={pageGoals()} onClose={() => (isPaletteOpen().value = false)} /> : null
}

const pageGoals = (): Goal[] =>
  offered().map(({ name, icon, path, key }) => ({ icon, text: name, hint: `g ${key}`, href: hrefOf(path) }))
