import { isObject, type JsonObject, listOf, objectOf, textOf, textsOf } from '../../../base/json-value.ts'
import { Icon } from '../../../parts/icon.tsx'
import { type FormProps, problemAt } from './form-props.ts'
import { PlainField } from './plain-field.tsx'
import { PromptField } from './prompt-field.tsx'
import { referencesFor } from './references.ts'
import { SchemaFields } from './schema-fields.tsx'
import { ToolsPicker } from './tools-picker.tsx'

const MOST = 8

/** The agents that work before the main one, at the same time. */
export function SubAgents({ document, value, problems }: FormProps) {
  const agents = listOf(value['sub_agents'])
  return (
    <fieldset class="stack">
      <legend>Sub-agents</legend>
      {agents.length === 0 && (
        <p class="soft small">They work first, side by side; the main agent reads what they answer.</p>
      )}
      {agents.map((agent, i) => (
        <SubAgent key={i} agent={objectOf(agent)} index={i} document={document} value={value} problems={problems} />
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

type SubAgentProps = FormProps & { agent: JsonObject; index: number }

function SubAgent({ agent, index, document, value, problems }: SubAgentProps) {
  const path = ['sub_agents', index] as const
  const name = textOf(agent['name'])
  const at = (key: string) => ({
    problem: problemAt(problems, [...path, key]),
    onChange: (next: unknown) => document.change([...path, key], next === '' ? undefined : next),
  })
  return (
    <div class="card padded stack">
      <div class="row tight sub-agent">
        <PlainField label="Name" value={name} isCode {...at('name')} />
        <PlainField label="Model" value={textOf(agent['model'])} placeholder="that of the call" {...at('model')} />
        <button
          type="button"
          class="button plain icon"
          aria-label={`Remove the sub-agent ${name}`}
          onClick={() => document.change(path, undefined)}
        >
          <Icon name="trash" />
        </button>
      </div>
      <PromptField
        label={`Prompt of ${name}`}
        value={textOf(agent['prompt'])}
        references={referencesFor(value, 'sub-agent')}
        {...at('prompt')}
      />
      <SchemaFields label={`Output of ${name}`} schema={objectOf(agent['output_schema'])} {...at('output_schema')} />
      <ToolsPicker chosen={textsOf(agent['tools'])} {...at('tools')} />
    </div>
  )
}
