import './flows.css'
import type { PageProps } from '../../base/router.ts'
import { FlowPage } from './flow-page.tsx'
import { FlowList } from './list/flow-list.tsx'
import { NewFlow } from './new-flow.tsx'

/** The pages of flows, which take JSON and return JSON that fits a schema: the list, a new flow, and one flow with its views. */
export function Flows({ params, query }: PageProps) {
  const { name, view } = params
  if (name !== undefined) return <FlowPage key={name} name={name} view={view} query={query} />
  const example = query.get('new')
  return example === null ? <FlowList query={query} /> : <NewFlow example={example} />
}
