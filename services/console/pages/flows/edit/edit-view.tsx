import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../../shared/client/api.ts'
import { may } from '../../../api/caller.ts'
import { send } from '../../../api/engine.ts'
import { objectOf } from '../../../base/json-value.ts'
import { useCheckedJson } from '../../../parts/editor/use-checked-json.ts'
import { Json } from '../../../parts/json.tsx'
import { lazy } from '../../../parts/lazy.tsx'
import { Notice } from '../../../parts/notice.tsx'
import { type Flow, flowPath } from '../flow.ts'
import { AgentFields, fieldsAt } from './agent-fields.tsx'
import { documentOf, type FlowDocument } from './flow-document.ts'
import type { FormProps } from './form-props.ts'
import { SaveBar } from './save-bar.tsx'
import { SchemaFields } from './schema-fields.tsx'
import { SubAgents } from './sub-agents.tsx'

const JsonEditor = lazy(() => import('../../../parts/editor/json-editor.tsx').then((loaded) => loaded.JsonEditor))

type EditViewProps = { flow: Flow; onChange(flow: Flow): void }

/** The newest version, to be changed where the token may do that. */
export const EditView = ({ flow, onChange }: EditViewProps) =>
  may('flows') ? (
    <Editor flow={flow} document={documentOf(flow)} onChange={onChange} />
  ) : (
    <section class="card padded" aria-label="Definition">
      <Json value={flow.definition} />
    </section>
  )

function Editor({ flow, document, onChange }: EditViewProps & { document: FlowDocument }) {
  const check = (body: unknown) => send<Schema<'FlowCheck'>>('POST', flowPath(flow.name, '/check'), body)
  const { problems, answer } = useCheckedJson(document.text, check).value
  const isBehind = document.version.value < flow.version
  useEffect(() => {
    if (isBehind && !document.isChanged.peek()) document.take(flow)
  }, [flow.version])
  return (
    <>
      <SaveBar flow={flow} document={document} problemCount={problems.length} onChange={onChange} />
      {isBehind && document.isChanged.value && <Behind flow={flow} onTake={() => document.take(flow)} />}
      <div class="edit-columns">
        <section class="card padded" aria-label="Form">
          {document.value.value ? (
            <DefinitionForm document={document} value={document.value.value} problems={problems} />
          ) : (
            <p class="soft">The form is back when the JSON has no mistake.</p>
          )}
        </section>
        <div class="stack">
          <JsonEditor label="Definition" text={document.text} problems={problems} />
          {answer?.warnings.map(({ param, message }) => (
            <Notice key={param} tone="warn">
              <code>{param}</code> {message}
            </Notice>
          ))}
          <PromptPreview check={answer} />
        </div>
      </div>
    </>
  )
}

const Behind = ({ flow, onTake }: { flow: Flow; onTake(): void }) => (
  <Notice tone="warn">
    <div class="row">
      <span class="grow">
        Somebody has saved v{flow.version} meanwhile. A save from here would replace it by what you see.
      </span>
      <button type="button" class="button" onClick={onTake}>
        Show v{flow.version}
      </button>
    </div>
  </Notice>
)

/** The prompts as the models get them, for a sample input. */
const PromptPreview = ({ check }: { check: Schema<'FlowCheck'> | undefined }) => (
  <section class="card" aria-label="Rendered prompts">
    <header>
      <h2 class="grow">Rendered prompts</h2>
    </header>
    <div class="padded-in stack">
      {check?.prompt_preview ? (
        <>
          {check.prompt_preview.agents.map(({ agent, system, user }) => (
            <section key={agent} class="stack close">
              <h3>{agent}</h3>
              {system !== '' && <pre class="code">{system}</pre>}
              <pre class="code">{user}</pre>
            </section>
          ))}
          <details>
            <summary class="small soft">Made for this input</summary>
            <Json value={check.prompt_preview.input} />
          </details>
        </>
      ) : (
        <p class="soft small">Shown when the definition has no problem, for a sample of the input.</p>
      )}
    </div>
  </section>
)

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
function DefinitionForm(props: FormProps) {
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
