import { objectOf, textOf, textsOf } from '../../../base/json-value.ts'
import { type FormProps, problemAt } from './form-props.ts'
import { PlainField } from './plain-field.tsx'
import { PromptField } from './prompt-field.tsx'
import { referencesFor } from './references.ts'
import { SchemaFields } from './schema-fields.tsx'
import { SubAgents } from './sub-agents.tsx'
import { ToolsPicker } from './tools-picker.tsx'

/** The definition as a form: one view of the document, beside its JSON. */
export function DefinitionForm(props: FormProps) {
  const { document, value } = props
  const at = fieldsOf(props)
  return (
    <div class="stack">
      <Prompts {...props} />
      <SchemaFields label="Input" schema={objectOf(value['input_schema'])} {...at('input_schema')} />
      <SchemaFields label="Output" schema={objectOf(value['output_schema'])} {...at('output_schema')} />
      <ToolsPicker chosen={textsOf(value['tools'])} {...at('tools')} />
      <PlainField label="Model" value={textOf(value['model'])} placeholder="that of the call" {...at('model')} />
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

function Prompts(props: FormProps) {
  const { value } = props
  const at = fieldsOf(props)
  const references = referencesFor(value, 'main')
  return (
    <>
      <PromptField
        label="System prompt"
        value={textOf(value['system_prompt_template'])}
        references={references}
        hint="Write {{ to insert a part of the input, a sub-agent's output or the memory."
        {...at('system_prompt_template')}
      />
      <PromptField
        label="User prompt"
        value={textOf(value['user_prompt_template'])}
        references={references}
        hint="Without one the agent gets the whole input as JSON."
        {...at('user_prompt_template')}
      />
    </>
  )
}

/** The properties that each field of the definition needs: its problem, and how it is changed. An empty text is no value. */
const fieldsOf =
  ({ document, problems }: FormProps) =>
  (key: string) => ({
    problem: problemAt(problems, [key]),
    onChange: (next: unknown) => document.change([key], next === '' ? undefined : next),
  })
