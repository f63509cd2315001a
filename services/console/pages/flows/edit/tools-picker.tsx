import type { Schema } from '../../../../../shared/client/api.ts'
import { get } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'

type ToolsPickerProps = {
  chosen: readonly string[]
  problem?: string | undefined
  onChange(tools: readonly string[]): void
}

/** Chooses among the tools that never ask for a permission. Unknown ones that are chosen are shown, so that they can be taken out. */
export function ToolsPicker({ chosen, problem, onChange }: ToolsPickerProps) {
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
