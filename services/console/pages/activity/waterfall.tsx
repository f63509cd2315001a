import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { clock, runClock } from '../../base/clock.ts'
import { duration } from '../../base/format.ts'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { lazy } from '../../parts/lazy.tsx'
import type { LiveRun } from '../../parts/run/live-run.ts'
import { PhaseBar } from './phase-bar.tsx'
import { type Call, type Row, rowsOf, ticksOf } from './waterfall-rows.ts'

const ModelCall = lazy(() => import('./model-call.tsx').then((loaded) => loaded.ModelCall))

type Run = Schema<'Run'>

/**
 * The timeline of a run: its turns with the calls of models and tools, which are hatched while they wait. A click on a
 * model call shows its messages.
 */
export function Waterfall({ run, live }: { run: Run; live: LiveRun }) {
  const opened = useSignal<Call | undefined>(undefined)
  const isOpen = run.ended_at === null
  useEffect(isOpen ? runClock : () => undefined, [isOpen])
  const rows = rowsOf(run)
  if (run.phases === undefined && !isOpen) return <NotKept run={run} />
  if (rows.length === 0) return null
  const end = isOpen ? clock().value : Date.parse(run.ended_at ?? '')
  const total = Math.max(1, end - Date.parse(run.started_at), ...rows.map(({ from, to = from }) => to))
  return (
    <section class="card padded" aria-label="Waterfall">
      <ol class="waterfall">
        <Axis total={total} />
        {rows.map((row, i) => (
          <Line key={i} row={row} total={total} onOpen={(call) => (opened.value = call)} />
        ))}
      </ol>
      {opened.value && (
        <ModelCall run={run} call={opened.value} frames={live.frames} onClose={() => (opened.value = undefined)} />
      )}
      {run.phases?.length === MOST && <p class="small soft">Only its first {MOST} steps are kept.</p>}
    </section>
  )
}

/** The most phases that the API keeps of a run. */
const MOST = 300

const ICONS: Readonly<Record<Row['kind'], IconName>> = {
  queued: 'clock',
  turn: 'right',
  model: 'chat',
  tool: 'tool',
  permission: 'approvals',
  subagent: 'agent',
  retry: 'clock',
}

function Line({ row, total, onOpen }: { row: Row; total: number; onOpen(call: Call): void }) {
  const { kind, name, depth, from, hasFailed, call } = row
  const to = row.to ?? total
  const took = duration(to - from)
  return (
    <li data-kind={kind} title={`${name}: from ${duration(from)}, ${took}`}>
      <span class={`name tight row depth-${depth}`}>
        {kind !== 'turn' && <Icon name={ICONS[kind]} />}
        {call ? (
          <button type="button" class="link cut" title="What was sent to the model" onClick={() => onOpen(call)}>
            {name}
          </button>
        ) : (
          <span class="cut">{name}</span>
        )}
        {hasFailed && <span class="problem">failed</span>}
      </span>
      <span class="bar">
        <i
          class={hasFailed ? 'failed' : ''}
          style={{ left: share(from, total), width: share(Math.max(0, to - from), total) }}
        />
      </span>
      <span class="small number">{row.to === undefined ? `${took} …` : took}</span>
    </li>
  )
}

const Axis = ({ total }: { total: number }) => (
  <li class="axis small soft" aria-hidden="true">
    <span />
    <span class="bar">
      {ticksOf(total).map((at) => (
        <span key={at} class="number" style={{ left: share(at, total) }}>
          {duration(at)}
        </span>
      ))}
    </span>
    <span />
  </li>
)

const share = (ms: number, total: number) => `${(ms / total) * 100}%`

const NotKept = ({ run }: { run: Run }) => (
  <section class="card padded stack close" aria-label="Waterfall">
    <PhaseBar run={run} />
    <p class="small soft">
      {run.kind === 'flow'
        ? 'The run of a flow tells of its agents below.'
        : 'Its single steps are not known: they are kept while the audit of the tenant stores payloads, for runs with at most 1 MiB of events.'}
    </p>
  </section>
)
