import { signal } from '@preact/signals'
import type { TenantEvent } from '../../../shared/client/api.ts'
import { showControls } from '../../../shared/reading/hidden.ts'
import { hrefOf, navigate } from '../base/router.ts'
import { ofTab } from '../base/tab.ts'

const current = (): NotificationPermission => ('Notification' in globalThis ? Notification.permission : 'denied')

/** Whether the browser may show notifications of the console: `default` until the person was asked. */
export const noticePermission = ofTab(() => signal<NotificationPermission>(current()))

export async function askForNotices(): Promise<void> {
  noticePermission().value = await Notification.requestPermission()
}

/** The notices of requests that wait, by their ids. */
const shown = ofTab(() => new Map<string, Notification>())
const MOST_SHOWN = 20

/** Shows a browser notification for a new permission request, if the person allows it. */
export function onRequest({ event, data }: TenantEvent): void {
  const id = String(data['request_id'])
  if (event === 'permission.resolved') take(id)
  if (event !== 'permission.requested' || current() !== 'granted') return
  const notice = new Notification(`Permission needed for ${showControls(String(data['tool_name']))}`, {
    body: 'An agent waits for your answer.',
    tag: id, // Several tabs show it once.
  })
  notice.addEventListener('click', () => {
    window.focus()
    navigate(hrefOf(`/approvals/${encodeURIComponent(id)}`))
  })
  shown().set(id, notice)
  const [oldest] = shown().keys()
  if (shown().size > MOST_SHOWN && oldest !== undefined) take(oldest)
}

function take(id: string): void {
  shown().get(id)?.close()
  shown().delete(id)
}

export function takeAll(): void {
  for (const id of shown().keys()) take(id)
}
