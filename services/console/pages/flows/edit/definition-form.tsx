import { objectOf } from '../../../base/json-value.ts'
import { AgentFields, fieldsAt } from './agent-fields.tsx'
import type { FormProps } from './form-props.ts'
import { SchemaFields } from './schema-fields.tsx'
import { SubAgents } from './sub-agents.tsx'

const PROMPTS = [
  {
    key: 'system_prompt_template',
    label: 'System prompt',
    hint: "Write {{ to insert a part of the input, a sub-agent's output or the memory.",
  },
  {
    key: 'user_prompt_template',
    label: 'User prompt',
    hint: 'Without one the agent gets the whole input as JSON.',
  },
] as const

/** The definition as a form: one view of the document, beside its JSON. */
export function DefinitionForm(props: FormProps) {
  const { document, value } = props
  return (
    <div class="stack">
      <SchemaFields label="Input" schema={objectOf(value['input_schema'])} {...fieldsAt(props, [])('input_schema')} />
      <AgentFields {...props} path={[]} agent={value} prompts={PROMPTS} kind="main" />
      <label class="choice">
        <input
          type="checkbox"
          checked={value['evolve'] === true}
          onChange={({ currentTarget }) => document.change(['evolve'], currentTarget.checked)}
        />
        Remember inputs with confirmed outputs, and show them to the agent
      </label>
      <SubAgents {...props} />
    </div>
  )
}
