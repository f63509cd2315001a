import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { ApiError } from '../../../../shared/client/errors.ts'
import { get, send } from '../../api/engine.ts'
import { tellFailure } from '../../base/announce.ts'
import { counted, duration, money, short } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { nameOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { follow, startOf } from './again.ts'

type Run = Schema<'Run'>

/** The state of one repeated run: not started yet, running, ended, or failed to start, with the reason. */
type Try = { runId?: string; run?: Run; refusal?: string }

const TIMES = 10
/** A browser opens at most six connections to a host, and the console needs some of them. */
const AT_ONCE = 3

type ReplayProps = { run: Run; onClose(): void }

/** Begins a run ten times with the same input, and shows how they end. */
export function Replay({ run, onClose }: ReplayProps) {
  const tries = useSignal<readonly Try[]>([])
  const abort = useRef<AbortController | undefined>(undefined)
  const isAtWork = useSignal(false)
  useEffect(() => () => stop(abort.current, tries), [])
  const start = async () => {
    abort.current = new AbortController()
    isAtWork.value = true
    tries.value = Array.from({ length: TIMES }, () => ({}))
    await replay(run, tries, abort.current).catch(tellFailure)
    isAtWork.value = false
  }
  return (
    <Dialog label="Replay" isWide onClose={onClose}>
      <div class="stack">
        <h2>Replay {TIMES} times</h2>
        <p class="soft">
          <b>{nameOf(run)}</b> begins {TIMES} times with the same input, {AT_ONCE} at once. The limits and the budget
          hold: what they refuse ends the replay. {run.cost_usd !== undefined && `One has cost ${money(run.cost_usd)}.`}
        </p>
        {tries.value.length > 0 && <Tries tries={tries.value} />}
        <div class="row">
          {isAtWork.value ? (
            <button type="button" class="button danger" onClick={() => stop(abort.current, tries)}>
              Cancel the rest
            </button>
          ) : (
            <button type="button" class="button main" onClick={() => void start()}>
              {tries.value.length === 0 ? 'Start' : 'Once more'}
            </button>
          )}
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  )
}

const isOpen = ({ runId, run, refusal }: Try) =>
  runId !== undefined && refusal === undefined && (run?.ended_at ?? null) === null

/** Begins no more, and ends those that are at work. */
function stop(abort: AbortController | undefined, tries: Signal<readonly Try[]>): void {
  if (!abort || abort.signal.aborted) return
  abort.abort()
  for (const each of tries.peek()) if (isOpen(each)) send('DELETE', `/runs/${each.runId}`).catch(tellFailure)
}

async function replay(run: Run, tries: Signal<readonly Try[]>, abort: AbortController): Promise<void> {
  const start = await startOf(run)
  const set = (at: number, next: Try) => (tries.value = tries.peek().with(at, { ...tries.peek()[at], ...next }))
  const course = { next: 0, isRefused: false }
  const one = async (at: number) => {
    const stream = follow(start)
    try {
      set(at, { runId: await stream.started() })
      await stream.result()
    } catch (cause) {
      // How a run has ended, its record says.
      if (stream.id === undefined) set(at, { refusal: cause instanceof Error ? cause.message : String(cause) })
      course.isRefused ||= cause instanceof ApiError
    }
    if (stream.id === undefined) return
    const ended = await get<Run>(`/runs/${stream.id}`)
    course.isRefused ||= ended.code === 'budget_exhausted'
    set(at, { run: ended })
  }
  const worker = async () => {
    while (course.next < TIMES && !course.isRefused && !abort.signal.aborted) await one(course.next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  for (const [at, each] of tries.peek().entries())
    if (each.runId === undefined && each.refusal === undefined) set(at, { refusal: 'Not begun' })
}

const Tries = ({ tries }: { tries: readonly Try[] }) => (
  <>
    <p aria-live="polite">{summaryOf(tries)}</p>
    <div class="table-wrap">
      <table class="table">
        <thead>
          <tr>
            {['Run', 'State', 'Ended as', 'Tokens', 'Cost', 'Took', 'Tool calls'].map((title, i) => (
              <th key={title} class={i > 2 ? 'right' : ''}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tries.map((each, at) => (
            <Row key={at} at={at} tried={each} />
          ))}
        </tbody>
      </table>
    </div>
  </>
)

function Row({ at, tried: { runId, run, refusal } }: { at: number; tried: Try }) {
  const state = run?.status ?? (refusal === undefined ? (runId === undefined ? 'pending' : 'running') : 'skipped')
  const figures = run && [
    short((run.input_tokens ?? 0) + (run.output_tokens ?? 0)),
    money(run.cost_usd ?? 0),
    duration(tookOf(run)),
    run.tool_calls ?? 0,
  ]
  return (
    <tr>
      <td>{runId === undefined ? at + 1 : <a href={hrefOf(`/activity/${runId}`)}>{at + 1}</a>}</td>
      <td>
        <StateBadge state={state} />
      </td>
      <td>{run?.code ?? refusal ?? ''}</td>
      {[0, 1, 2, 3].map((i) => (
        <td key={i} class="right number">
          {figures?.[i] ?? '–'}
        </td>
      ))}
    </tr>
  )
}

const tookOf = ({ started_at: from, ended_at: to }: Run) => Date.parse(to ?? from) - Date.parse(from)

/** `7 of 10 ended: 6 done, 1 failed · $0.12 · 1.2 s in the middle`. */
export function summaryOf(tries: readonly Try[]): string {
  const ended = tries.flatMap(({ run }) => (run ? [run] : []))
  const done = ended.filter(({ status }) => status === 'done').length
  const cost = ended.reduce((sum, { cost_usd: usd = 0 }) => sum + usd, 0)
  const middle = ended.map(tookOf).toSorted((one, other) => one - other)[Math.floor(ended.length / 2)]
  const parts = [
    `${ended.length} of ${counted(tries.length, 'run')} ended: ${done} done, ${ended.length - done} otherwise`,
    `${money(cost)} in all`,
  ]
  return [...parts, ...(middle === undefined ? [] : [`half of them within ${duration(middle)}`])].join(' · ')
}
