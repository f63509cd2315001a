import type { ComponentChildren } from 'preact'
import type { Schema } from '../../../../shared/client/api.ts'
import { createRuns } from '../../../../shared/client/resources/runs.ts'
import { reduceRun } from '../../../../shared/client/view/reduce-run.ts'
import { type Block, EMPTY_RUN } from '../../../../shared/client/view/run-view.ts'
import { showJson } from '../../../../shared/reading/hidden.ts'
import { has } from '../../api/caller.ts'
import { get, transport } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { absolute, duration, money, short } from '../../base/format.ts'
import { type DiffLine, diffLines } from '../../base/line-diff.ts'
import { hrefOf } from '../../base/router.ts'
import { Icon } from '../../parts/icon.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { nameOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'

type Run = Schema<'Run'>

/** A run with its input and its answer, if they are kept. */
type Side = { run: Run; input: string; output: string; calls: readonly string[] }

const NOT_KEPT = 'Not kept: the audit of the tenant stores no payloads, or no longer.'

/** Two runs side by side. What differs is marked. */
export function Compare({ ids }: { ids: readonly [string, string] }) {
  const both = useResource(
    ids.join(' '),
    () => Promise.all(ids.map(readSide)),
    ({ event, data }) => event === 'run.ended' && ids.includes(String(data['run_id'])),
  )
  return (
    <div class="page">
      <a class="button plain back-link" href={hrefOf('/activity')}>
        <Icon name="back" /> Activity
      </a>
      <header class="page-head">
        <div class="title">
          <h1>Two runs</h1>
          <p class="soft">What was given to each, what it did, and what it cost.</p>
        </div>
        <a class="button" href={hrefOf(`/activity/${ids[1]}`, { with: ids[0] })}>
          Change sides
        </a>
      </header>
      <Loaded from={both}>{([one, other]) => one && other && <Sides one={one} other={other} />}</Loaded>
    </div>
  )
}

const Sides = ({ one, other }: { one: Side; other: Side }) => (
  <>
    <section class="card table-wrap" aria-label="Figures">
      <table class="table compare">
        <thead>
          <tr>
            <td />
            {[one, other].map(({ run }, i) => (
              <th key={i} scope="col">
                <a href={hrefOf(`/activity/${run.run_id}`)}>{nameOf(run)}</a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {FIGURES.map(([name, textOf]) => (
            <Figure key={name} name={name} texts={[textOf(one.run), textOf(other.run)]} runs={[one.run, other.run]} />
          ))}
        </tbody>
      </table>
    </section>
    <Texts title="Input" one={one.input} other={other.input} />
    <Texts title="Tool calls" one={one.calls.join('\n')} other={other.calls.join('\n')} nothing="No tool was called." />
    <Texts title="Answer" one={one.output} other={other.output} />
  </>
)

const FIGURES: readonly (readonly [name: string, textOf: (run: Run) => string | undefined])[] = [
  ['State', ({ status }) => status],
  ['Ended as', ({ code }) => code],
  ['Model', ({ model }) => model],
  ['Input tokens', ({ input_tokens: count }) => (count === undefined ? undefined : short(count))],
  ['From the cache', ({ cache_read_tokens: count }) => (count === undefined ? undefined : short(count))],
  ['Output tokens', ({ output_tokens: count }) => (count === undefined ? undefined : short(count))],
  ['Cost', ({ cost_usd: usd }) => (usd === undefined ? undefined : money(usd))],
  [
    'Took',
    ({ started_at: from, ended_at: to }) => (to === null ? undefined : duration(Date.parse(to) - Date.parse(from))),
  ],
  ['First token after', ({ first_token_ms: ms }) => (ms === undefined ? undefined : duration(ms))],
  ['Turns', ({ turns }) => turns?.toString()],
  ['Tool calls', ({ tool_calls: calls }) => calls?.toString()],
  ['Permissions', ({ permissions }) => permissions?.toString()],
  ['Started', ({ started_at: at }) => absolute(at)],
]

/** Two runs never have the same. */
const NEVER_ALIKE = ['Started', 'Took', 'First token after'] as const

type FigureProps = { name: string; texts: readonly [string | undefined, string | undefined]; runs: readonly Run[] }

function Figure({ name, texts, runs }: FigureProps) {
  if (texts.every((text) => text === undefined)) return null
  const differs = texts[0] !== texts[1] && !(NEVER_ALIKE as readonly string[]).includes(name)
  return (
    <tr data-differs={differs}>
      <th scope="row">{name}</th>
      {texts.map((text, i) => (
        <td key={i} class="number">
          {name === 'State' ? <StateBadge state={runs[i]?.status ?? ''} /> : (text ?? '–')}
          {differs && i === 1 && <Differs />}
        </td>
      ))}
    </tr>
  )
}

const Differs = () => <span class="badge warn">differs</span>

type TextsProps = { title: string; one: string; other: string; nothing?: string }

/** Two texts side by side. Lines that only one of them has are marked. */
function Texts({ title, one, other, nothing = NOT_KEPT }: TextsProps) {
  const isSame = one === other
  const lines = isSame ? [] : diffLines(one, other)
  const sides = isSame ? ([one] as const) : ([one, other] as const)
  return (
    <section class="card" aria-label={title}>
      <header>
        <h2 class="grow">{title}</h2>
        {isSame ? <span class="badge good">the same</span> : <Differs />}
      </header>
      <div class="compare-texts" data-sides={sides.length}>
        {sides.map((text, i) => (
          <div
            key={i}
            class="compare-text"
            role="region"
            tabIndex={0}
            aria-label={`${title}, ${i === 0 ? 'first' : 'second'} run`}
          >
            {text === '' ? (
              <span class="soft">{nothing}</span>
            ) : isSame ? (
              text
            ) : (
              <Marked lines={lines} without={i === 0 ? 'added' : 'removed'} />
            )}
          </div>
        ))}
      </div>
    </section>
  )
}

const Marked = ({ lines, without }: { lines: readonly DiffLine[]; without: DiffLine['kind'] }): ComponentChildren =>
  lines.flatMap(({ kind, text }, i) =>
    kind === without
      ? []
      : [
          kind === 'same' ? (
            <span key={i}>
              {text}
              {'\n'}
            </span>
          ) : (
            <mark key={i}>
              {text}
              {'\n'}
            </mark>
          ),
        ],
  )

async function readSide(id: string): Promise<Side> {
  const run = await get<Run>(`/runs/${encodeURIComponent(id)}`)
  if (run.kind === 'flow') return { run, calls: [], ...(await ofFlow(run)) }
  const blocks = run.ended_at === null ? [] : await blocksOf(id)
  const output = blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])).join('\n\n')
  return { run, input: run.request?.prompt ?? run.title ?? '', output, calls: callsOf(blocks) }
}

async function ofFlow({ trace_id: trace }: Run): Promise<Pick<Side, 'input' | 'output'>> {
  const found = has('dispatches')
    ? await get<Schema<'Dispatch'>>(`/dispatches/${trace}`).catch(() => undefined)
    : undefined
  const textOf = (value: unknown) => (value === null || value === undefined ? '' : showJson(value, 2))
  return { input: textOf(found?.input), output: textOf(found?.output) }
}

/** The content of a run, if its events are kept. A failed run ends with an error. */
async function blocksOf(id: string): Promise<readonly Block[]> {
  let view = EMPTY_RUN
  try {
    for await (const event of createRuns(transport()).resume(id)) view = reduceRun(view, event)
  } catch {
    // The record of the run shows the failure.
  }
  return view.blocks
}

/** A line for each call, those of sub-agents below that of their agent. */
const callsOf = (blocks: readonly Block[], indent = ''): readonly string[] =>
  blocks.flatMap((block) => {
    if (block.kind === 'subagent') return callsOf(block.blocks, `${indent}  `)
    if (block.kind !== 'tool') return []
    return [
      `${indent}${block.call.tool_name} ${showJson(block.call.input)}${block.result?.is_error ? ' (failed)' : ''}`,
    ]
  })
