import type { Schema } from '../../../../../shared/client/api.ts'
import { get } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'
import { type JsonObject, objectOf, type Path, textOf, textsOf } from '../../../base/json-value.ts'
import { type FormProps, problemAt } from './form-props.ts'
import { PlainField } from './plain-field.tsx'
import { PromptField } from './prompt-field.tsx'
import { referencesFor } from './references.ts'
import { SchemaFields } from './schema-fields.tsx'

type Prompt = { key: string; label: string; hint?: string }

type AgentFieldsProps = FormProps & {
  /** The path of the agent in the definition. */
  path: Path
  agent: JsonObject
  prompts: readonly Prompt[]
  /** Behind the labels, where a form has several agents. */
  of?: string
  kind: 'main' | 'sub-agent'
}

/** The prompt, the tools and the output of an agent: the same form for the main agent and for each sub-agent. */
export function AgentFields({ document, value, problems, path, agent, prompts, of = '', kind }: AgentFieldsProps) {
  const at = fieldsAt({ document, problems }, path)
  const references = referencesFor(value, kind)
  return (
    <>
      {prompts.map(({ key, label, hint }) => (
        <PromptField
          key={key}
          label={label + of}
          value={textOf(agent[key])}
          references={references}
          {...(hint !== undefined && { hint })}
          {...at(key)}
        />
      ))}
      <SchemaFields label={`Output${of}`} schema={objectOf(agent['output_schema'])} {...at('output_schema')} />
      <ToolsPicker chosen={textsOf(agent['tools'])} {...at('tools')} />
      <div class="form-grid">
        <PlainField
          label={`Model${of}`}
          value={textOf(agent['model'])}
          placeholder="that of the call"
          {...at('model')}
        />
        {kind === 'sub-agent' && (
          <PlainField
            label={`Provider${of}`}
            value={textOf(agent['provider_instance'])}
            placeholder="that of the call"
            isCode
            {...at('provider_instance')}
          />
        )}
      </div>
    </>
  )
}

/** The properties that each field of an object needs: its problem, and how it is changed. An empty text is no value. */
export const fieldsAt =
  ({ document, problems }: Pick<FormProps, 'document' | 'problems'>, path: Path) =>
  (key: string) => ({
    problem: problemAt(problems, [...path, key]),
    onChange: (next: unknown) => document.change([...path, key], next === '' ? undefined : next),
  })

type ToolsPickerProps = {
  chosen: readonly string[]
  problem?: string | undefined
  onChange(tools: readonly string[]): void
}

/** Chooses among the tools that never ask for a permission. Chosen tools that are unknown are shown too, so that they can be removed. */
function ToolsPicker({ chosen, problem, onChange }: ToolsPickerProps) {
  const known =
    useResource('/flows/tools', () => get<Schema<'FlowToolList'>>('/flows/tools')).state.value.data?.tools ?? []
  const unknown = chosen.filter((tool) => !known.includes(tool))
  const toggle = (tool: string) =>
    onChange(chosen.includes(tool) ? chosen.filter((each) => each !== tool) : [...chosen, tool])
  return (
    <fieldset class="tools">
      <legend>Tools</legend>
      <div class="row">
        {[...known, ...unknown].map((tool) => (
          <label key={tool} class="choice">
            <input type="checkbox" checked={chosen.includes(tool)} onChange={() => toggle(tool)} />
            {tool}
          </label>
        ))}
        {known.length + unknown.length === 0 && <span class="soft small">This server has no tools for flows.</span>}
      </div>
      {problem !== undefined && <span class="problem small">{problem}</span>}
    </fieldset>
  )
}
