import { caller, has, may } from '../../api/caller.ts'
import { hrefOf } from '../../base/router.ts'

/** A directive of the demo model, on a line of its own. */
const DIRECTIVE = /^\/(?:say|think|tool|plan|sleep|fail)\b/m

/** The prompt of a person. A script for the demo model below it is folded. A long prompt scrolls, also with the keyboard. */
export function Prompt({ text }: { text: string }) {
  const at = text.search(DIRECTIVE)
  const said = at > 0 ? text.slice(0, at).trim() : ''
  return (
    <div class="prompt" role="region" aria-label="Prompt" tabIndex={0}>
      {said === '' ? text : said}
      {said !== '' && (
        <details>
          <summary>Script of the demo</summary>
          {text.slice(at)}
        </details>
      )}
    </div>
  )
}

/** Below the answer to a question that no model could answer. */
export const PutInModel = ({ prompt }: { prompt: string | undefined }) =>
  caller().value?.model === 'demo' && prompt && !DIRECTIVE.test(prompt) ? (
    <p class="soft small">
      No model is configured, so nobody can answer this.{' '}
      {may('admin') && has('config') && <a href={hrefOf('/settings')}>Put in your model</a>}
    </p>
  ) : null
