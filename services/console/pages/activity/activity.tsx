import type { PageProps } from '../../base/page-props.ts'
import { RunList } from './run-list.tsx'
import { RunPage } from './run-page.tsx'

/** All runs with their filters, or one of them. */
export const Activity = ({ params, query }: PageProps) =>
  params['run'] === undefined ? <RunList query={query} /> : <RunPage key={params['run']} id={params['run']} />
