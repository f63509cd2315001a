import { useRef } from 'preact/hooks'
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../base/json-value.ts'
import { Icon } from '../../../parts/icon.tsx'
import { AgentFields, fieldsAt } from './agent-fields.tsx'
import { type FormProps, problemAt } from './form-props.ts'
import { PlainField } from './plain-field.tsx'

const MOST = 8

/** The agents that work before the main one, at the same time. */
export function SubAgents(props: FormProps) {
  const { document, value } = props
  const agents = listOf(value['sub_agents'])
  const known = useRef(agents.length).current
  return (
    <fieldset class="stack">
      <legend>Sub-agents</legend>
      {agents.length === 0 && (
        <p class="soft small">They work first, side by side; the main agent reads what they answer.</p>
      )}
      {agents.map((agent, i) => (
        <SubAgent key={i} {...props} agent={objectOf(agent)} index={i} isNew={i >= known} />
      ))}
      {agents.length < MOST && (
        <button
          type="button"
          class="button plain add"
          onClick={() => document.change(['sub_agents'], [...agents, newAgent(agents)])}
        >
          <Icon name="plus" /> Add a sub-agent
        </button>
      )}
    </fieldset>
  )
}

function newAgent(agents: readonly unknown[]): JsonObject {
  const names = new Set(agents.filter(isObject).map(({ name }) => name))
  let count = agents.length + 1
  while (names.has(`agent_${count}`)) count++
  const output = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
  return { name: `agent_${count}`, prompt: '{{.input}}', output_schema: output }
}

const PROMPTS = [{ key: 'prompt', label: 'Prompt' }] as const

type SubAgentProps = FormProps & { agent: JsonObject; index: number; isNew: boolean }

/** The folded form shows the name of the sub-agent, its output, and whether it has a problem. */
function SubAgent({ agent, index, isNew, ...props }: SubAgentProps) {
  const path = ['sub_agents', index] as const
  const name = textOf(agent['name'])
  const answers = Object.keys(objectOf(objectOf(agent['output_schema'])['properties'])).join(', ')
  const isWrong = problemAt(props.problems, path) !== undefined
  return (
    <details class="card sub-agent" open={isNew}>
      <summary class="padded">
        <span class="mono">{name}</span>{' '}
        {isWrong ? (
          <span class="problem small">has a problem</span>
        ) : (
          <span class="soft small">{answers !== '' && `answers ${answers}`}</span>
        )}
      </summary>
      <div class="padded-in stack">
        <PlainField label="Name" value={name} isCode {...fieldsAt(props, path)('name')} />
        <AgentFields {...props} path={path} agent={agent} prompts={PROMPTS} of={` of ${name}`} kind="sub-agent" />
        <button type="button" class="button danger add" onClick={() => props.document.change(path, undefined)}>
          Remove the sub-agent {name}
        </button>
      </div>
    </details>
  )
}
