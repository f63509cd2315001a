import { useSignal } from '@preact/signals'
import type { ApiRequest } from '../base/request-text.ts'
import { Icon } from './icon.tsx'
import { lazy } from './lazy.tsx'

const RequestTexts = lazy(() => import('./request-texts.tsx').then((loaded) => loaded.RequestTexts))

const LABEL = 'Copy as curl, ae or TypeScript'

/** Copies the API request of a page as a shell command or as TypeScript. */
export function CopyAs(request: ApiRequest) {
  const isOpen = useSignal(false)
  return (
    <>
      <button
        type="button"
        class="button plain icon"
        title={LABEL}
        aria-label={LABEL}
        onClick={() => (isOpen.value = true)}
      >
        <Icon name="events" />
      </button>
      {isOpen.value && <RequestTexts request={request} onClose={() => (isOpen.value = false)} />}
    </>
  )
}
