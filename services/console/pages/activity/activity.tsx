import type { PageProps } from '../../base/page-props.ts'
import { lazy } from '../../parts/lazy.tsx'
import { RunList } from './run-list.tsx'
import './activity.css'

const RunPage = lazy(() => import('./run-page.tsx').then((loaded) => loaded.RunPage))
const Compare = lazy(() => import('./compare.tsx').then((loaded) => loaded.Compare))

/** All runs with their filters, one of them, or two. */
export function Activity({ params: { run }, query }: PageProps) {
  const other = query.get('with')
  if (run === undefined) return <RunList query={query} />
  return other ? <Compare key={`${run} ${other}`} ids={[run, other]} /> : <RunPage key={run} id={run} />
}
