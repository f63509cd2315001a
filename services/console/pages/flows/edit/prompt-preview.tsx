import type { Schema } from '../../../../../shared/client/api.ts'
import { Json } from '../../../parts/json.tsx'

/** The prompts as the models get them, for a sample input. */
export const PromptPreview = ({ check }: { check: Schema<'FlowCheck'> | undefined }) => (
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
