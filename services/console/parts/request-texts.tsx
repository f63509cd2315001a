import { apiUrl, needsToken } from '../api/engine.ts'
import { tell } from '../base/announce.ts'
import { type ApiRequest, asAe, asCurl, asTypeScript } from '../base/request-text.ts'
import { Dialog } from './dialog.tsx'
import { Icon } from './icon.tsx'

/** A request of the API in each of the languages. */
export function RequestTexts({ request, onClose }: { request: ApiRequest; onClose(): void }) {
  const target = { url: apiUrl(), hasToken: needsToken() }
  return (
    <Dialog label="Copy as" isWide onClose={onClose}>
      <div class="stack">
        <CopyText name="curl" text={asCurl(request, target)} />
        <CopyText name="ae" text={asAe(request)} />
        <CopyText name="TypeScript" text={asTypeScript(request, target)} />
        <form method="dialog" class="row">
          <button type="submit" class="button" onClick={onClose}>
            Close
          </button>
        </form>
      </div>
    </Dialog>
  )
}

/** A text with a button that copies it. */
export function CopyText({ name, text }: { name: string; text: string }) {
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => tell(`Copied for ${name}`),
      () => tell('The browser does not allow copying here: select the text.', 'bad'),
    )
  return (
    <section class="stack close" aria-label={name}>
      <div class="row">
        <h3 class="grow">{name}</h3>
        {isSecureContext && (
          <button type="button" class="button plain" onClick={() => void copy()}>
            <Icon name="copy" />
            Copy
          </button>
        )}
      </div>
      <pre class="code">{text}</pre>
    </section>
  )
}
