import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { RunEvent, Schema } from '../../../../shared/client/api.ts'
import { createSession } from '../../../../shared/client/resources/sessions.ts'
import { showJson } from '../../../../shared/reading/hidden.ts'
import { transport } from '../../api/engine.ts'
import { counted } from '../../base/format.ts'
import { Dialog } from '../../parts/dialog.tsx'
import type { Call } from './waterfall-rows.ts'

/** A message of a model call, in the order in which the model reads them. */
type Sent = { role: 'system' | 'user' | 'assistant' | 'tool'; text: string; name?: string }

type ModelCallProps = { run: Schema<'Run'>; call: Call; frames: readonly RunEvent[]; onClose(): void }

/** The messages of a model call, if they are kept: the request of the run, its conversation, and the earlier turns of the run. */
export function ModelCall({ run, call, frames, onClose }: ModelCallProps) {
  const earlier = useSignal<readonly Sent[]>([])
  useEffect(() => void readEarlier(run, call).then((found) => (earlier.value = found)), [])
  const messages = [...systemOf(run, call), ...earlier.value, ...sentBefore(run, call, frames)]
  return (
    <Dialog label={`Model call of turn ${call.turn}`} isWide onClose={onClose}>
      <div class="stack">
        <h2>
          {call.name}, turn {call.turn}
        </h2>
        <p class="soft">
          {counted(messages.length, 'part')} as sent, as far as they are kept.{' '}
          {run.request?.system_prompt === undefined && 'The system prompt of the server and '}
          {run.request?.system_prompt === undefined ? 'the' : 'The'} definitions of its tools went with them, and are
          not kept.
        </p>
        <ol class="stack close sent">
          {messages.map(({ role, name, text }, i) => (
            <li key={i} data-role={role}>
              <b class="small">{name === undefined ? role : `${role}, ${name}`}</b>
              <div class="compare-text" role="region" tabIndex={0} aria-label={`Message ${i + 1}, ${role}`}>
                {text}
              </div>
            </li>
          ))}
        </ol>
        <form method="dialog">
          <button type="submit" class="button">
            Close
          </button>
        </form>
      </div>
    </Dialog>
  )
}

const systemOf = ({ request }: Schema<'Run'>, { agent }: Call): readonly Sent[] =>
  agent === undefined && request?.system_prompt !== undefined ? [{ role: 'system', text: request.system_prompt }] : []

/** The messages of the conversation before the message of this run; empty if the conversation was deleted. */
async function readEarlier(
  { run_id: id, session_id: session }: Schema<'Run'>,
  { agent }: Call,
): Promise<readonly Sent[]> {
  if (session === undefined || agent !== undefined) return []
  const all = await createSession(transport(), session)
    .messages({ head: id })
    .all()
    .catch(() => [])
  const own = all.findIndex(({ run_id: of }) => of === id)
  return all
    .slice(0, Math.max(0, own))
    .flatMap(({ role, blocks }) => blocks.map((block) => ({ role, ...textOf(block) })))
}

type Block = Schema<'SessionMessage'>['blocks'][number]

const textOf = (block: Block): Pick<Sent, 'text' | 'name'> => {
  if (block.type === 'tool_use') return { name: block.tool_name, text: showJson(block.input, 2) }
  if (block.type === 'tool_result') return { name: block.tool_name, text: block.output }
  return block.type === 'file' ? { name: 'file', text: block.name } : { text: block.text }
}

/** The agent's texts, calls and results before this turn. Events of a sub-agent are wrapped. */
export function sentBefore(run: Schema<'Run'>, { agent, turn }: Call, frames: readonly RunEvent[]): readonly Sent[] {
  const sent: Sent[] = []
  const prompt = agent === undefined ? (run.request?.prompt ?? run.title) : undefined
  if (prompt !== undefined) sent.push({ role: 'user', text: prompt })
  for (const frame of frames) {
    const own = eventOf(frame, agent)
    if (own?.event === 'turn_start' && own.data['turn_number'] === turn) break
    const message = own && messageOf(own)
    if (message) sent.push(message)
  }
  return sent
}

type Own = { event: string; data: Readonly<Record<string, unknown>> }

/** An event of the agent itself. */
function eventOf({ event, data }: RunEvent, agent: string | undefined): Own | undefined {
  const fields = data as Readonly<Record<string, unknown>>
  if (event !== 'subagent_event') return agent === undefined ? { event, data: fields } : undefined
  return fields['subagent_id'] === agent ? { event: String(fields['event_type']), data: fields } : undefined
}

function messageOf({ event, data }: Own): Sent | undefined {
  const [name, text] = [String(data['tool_name']), String(data['text'])]
  if (event === 'text') return { role: 'assistant', text }
  if (event === 'thinking') return { role: 'assistant', name: 'thinking', text }
  if (event === 'steered') return { role: 'user', text }
  if (event === 'tool_use') return { role: 'assistant', name: `calls ${name}`, text: showJson(data['input'], 2) }
  if (event === 'tool_result') return { role: 'tool', name, text: String(data['output']) }
  const isCut = event === 'warning' && String(data['code']).startsWith('context_c')
  return isCut ? { role: 'system', name: 'note', text: `From here on: ${String(data['message'])}` } : undefined
}
