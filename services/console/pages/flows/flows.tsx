import './flows.css'
import type { PageProps } from '../../base/router.ts'
import { FlowPage } from './flow-page.tsx'
import { FlowList } from './list/flow-list.tsx'
import { NewFlow } from './new-flow.tsx'

/** JSON in, JSON out that fits a schema: the list of the flows, a new one, and one of them with all that concerns it. */
export function Flows({ params, query }: PageProps) {
  const { name, view } = params
  if (name !== undefined) return <FlowPage key={name} name={name} view={view} query={query} />
  const example = query.get('new')
  return example === null ? <FlowList query={query} /> : <NewFlow example={example} />
}
