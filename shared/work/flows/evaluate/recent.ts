import type { TenantId } from '../../../kernel/tenant.ts'
import type { Dispatch, DispatchStatus, DispatchStore, FlowRef } from '../port.ts'

const PAGE = 200
/** So many of a flow's newest executions are looked at. */
const MAX_PAGES = 5

const HAS_RUN: ReadonlySet<DispatchStatus> = new Set(['ok', 'invalid_output', 'error'])

/** The newest executions of a version that have ended and whose inputs are kept, newest first, at most `limit`. */
export async function recentExecutions(
  dispatches: Pick<DispatchStore, 'list'>,
  { tenant, flow, limit }: { tenant: TenantId; flow: FlowRef; limit: number },
): Promise<Dispatch[]> {
  const found: Dispatch[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < MAX_PAGES && found.length < limit; pages++) {
    const page = await dispatches.list(tenant, { kind: 'run', flow: flow.name, limit: PAGE, cursor })
    found.push(...page.dispatches.filter((dispatch) => isUsable(dispatch, flow)))
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  return found.slice(0, limit)
}

const isUsable = ({ status, keeps_payloads: isKept, flow }: Dispatch, { uid, version }: FlowRef): boolean =>
  HAS_RUN.has(status) && isKept && flow.uid === uid && flow.version === version
