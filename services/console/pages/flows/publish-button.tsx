import { useSignal } from '@preact/signals'
import { may } from '../../api/caller.ts'
import { send } from '../../api/engine.ts'
import { tell } from '../../base/announce.ts'
import { Notice } from '../../parts/notice.tsx'
import { type Flow, flowPath } from './flow.ts'

type PublishButtonProps = {
  flow: Flow
  /** The share of the evaluated runs that must have passed. The server decides. */
  passRate?: number | undefined
  isOff?: boolean
  onPublished(flow: Flow): void
}

/** Publishes the newest version, or says why the server does not. */
export function PublishButton({ flow, passRate, isOff = false, onPublished }: PublishButtonProps) {
  const failure = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  if (!may('flows')) return null
  const publish = async () => {
    isBusy.value = true
    failure.value = undefined
    try {
      const gate = passRate === undefined ? '' : `?require_pass_rate=${passRate}`
      const published = await send<Flow>('POST', flowPath(flow.name, `/publish${gate}`))
      tell(`v${published.version} of ${flow.name} is published`)
      onPublished(published)
    } catch (cause) {
      failure.value = cause instanceof Error ? cause.message : String(cause)
    }
    isBusy.value = false
  }
  return (
    <>
      <button type="button" class="button main" disabled={isOff || isBusy.value} onClick={() => void publish()}>
        Publish v{flow.version}
      </button>
      {failure.value !== undefined && (
        <div class="whole-row">
          <Notice tone="bad">{failure.value}</Notice>
        </div>
      )}
    </>
  )
}
