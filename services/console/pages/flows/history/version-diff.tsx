import { type DiffLine, diffLines } from '../../../base/line-diff.ts'
import { setFilters } from '../../../base/router.ts'
import type { Revision } from '../flow.ts'

/** How many lines are shown around a change. */
const AROUND = 3

type VersionDiffProps = { revisions: readonly Revision[]; chosen: Revision; against: string | null }

/** The changes of one version against another: the one before it, unless another is chosen. */
export function VersionDiff({ revisions, chosen, against }: VersionDiffProps) {
  const others = revisions.filter(({ version }) => version !== chosen.version)
  const other =
    others.find(({ version }) => String(version) === against) ?? others.find(({ version }) => version < chosen.version)
  return (
    <section class="card" aria-label="Changes">
      <header>
        <h2 class="grow">{other ? `Changes in v${chosen.version}` : `v${chosen.version}`}</h2>
        {others.length > 0 && (
          <label class="row small">
            against
            <select
              class="input"
              value={other?.version}
              onChange={({ currentTarget }) => setFilters({ against: currentTarget.value })}
            >
              {!other && <option value="">nothing</option>}
              {others.map(({ version }) => (
                <option key={version} value={version}>
                  v{version}
                </option>
              ))}
            </select>
          </label>
        )}
      </header>
      <Lines before={other ? printed(other) : ''} after={printed(chosen)} />
    </section>
  )
}

const printed = ({ definition }: Revision) => JSON.stringify(definition, null, 2)

function Lines({ before, after }: { before: string; after: string }) {
  if (before === '')
    return (
      <pre class="code" tabIndex={0}>
        {after}
      </pre>
    )
  const lines = diffLines(before, after)
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - AROUND), i + AROUND + 1).some(isChange))
  if (!near.includes(true)) return <p class="padded-in soft">The definitions are the same.</p>
  return (
    <pre class="code diff" tabIndex={0}>
      {stretchesOf(lines, near).map(({ look, texts }, i) => (
        <span key={i} class={look}>
          {texts.join('\n')}
        </span>
      ))}
    </pre>
  )
}

type Stretch = { look: DiffLine['kind'] | 'place'; texts: string[] }

/** Adjacent lines of the same kind are one text. `…` marks lines that are left out after a change. */
function stretchesOf(lines: readonly DiffLine[], near: readonly boolean[]): Stretch[] {
  const stretches: Stretch[] = []
  for (const [i, { kind, text }] of lines.entries()) {
    if (!near[i] && near[i - 1] !== true) continue
    const look = near[i] ? kind : 'place'
    const shown = near[i] ? `${SIGNS[kind]} ${text}` : '…'
    const last = stretches.at(-1)
    if (last?.look === look) last.texts.push(shown)
    else stretches.push({ look, texts: [shown] })
  }
  return stretches
}

const isChange = ({ kind }: { kind: string }) => kind !== 'same'

const SIGNS = { same: ' ', removed: '-', added: '+' } as const
