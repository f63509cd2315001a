import { useSignal } from '@preact/signals'

/** Offers notifications of the browser, which tell of requests while the tab is not seen. Browsers have them on secure pages only. */
export function NotifyMe() {
  const isAsked = useSignal(
    !('Notification' in globalThis) || !isSecureContext || Notification.permission !== 'default',
  )
  if (isAsked.value) return null
  return (
    <button
      type="button"
      class="button plain"
      onClick={() => void Notification.requestPermission().then(() => (isAsked.value = true))}
    >
      Notify me
    </button>
  )
}
