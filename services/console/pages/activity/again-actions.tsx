import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import { lazy } from '../../parts/lazy.tsx'
import { begin, canStartAgain, startOf } from './again.ts'
import { Menu } from './menu.tsx'

const EditAgain = lazy(() => import('./edit-again.tsx').then((loaded) => loaded.EditAgain))
const Replay = lazy(() => import('./replay.tsx').then((loaded) => loaded.Replay))

type Run = Schema<'Run'>

/** Starts a run again without changes, and shows the new run. */
export async function runAgain(run: Run): Promise<void> {
  try {
    const id = await begin(await startOf(run))
    tell('It runs again: this is the new run')
    navigate(hrefOf(`/activity/${id}`))
  } catch (cause) {
    tellFailure(cause)
  }
}

/** The actions for a run: start it again, with or without changes, start it ten times, or compare it with another run. */
export function AgainActions({ run }: { run: Run }) {
  const dialog = useSignal<'edit' | 'replay' | undefined>(undefined)
  const isBusy = useSignal(false)
  const close = () => void (dialog.value = undefined)
  const again = () => {
    isBusy.value = true
    void runAgain(run).then(() => (isBusy.value = false))
  }
  const canStart = canStartAgain(run)
  return (
    <>
      {canStart && (
        <button type="button" class="button" disabled={isBusy.value} onClick={again}>
          Run again
        </button>
      )}
      <Menu label="More">
        {canStart && (
          <>
            <button type="button" class="button plain" onClick={() => (dialog.value = 'edit')}>
              Edit and run again …
            </button>
            <button type="button" class="button plain" onClick={() => (dialog.value = 'replay')}>
              Replay 10 times …
            </button>
          </>
        )}
        <a class="button plain" href={hrefOf('/activity', { compare: run.run_id, ...likeness(run) })}>
          Compare with another run …
        </a>
      </Menu>
      {dialog.value === 'edit' && <EditAgain run={run} onClose={close} />}
      {dialog.value === 'replay' && <Replay run={run} onClose={close} />}
    </>
  )
}

/** Runs of the same flow or conversation are offered first for a comparison. */
const likeness = ({ flow, session_id }: Run): Record<string, string | undefined> =>
  flow === undefined ? { session_id } : { flow }
