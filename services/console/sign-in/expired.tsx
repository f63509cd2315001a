import { useEffect, useRef } from 'preact/hooks'
import { Notice } from '../parts/notice.tsx'
import { oidcSettings } from './session.ts'
import { TokenForm } from './sign-in-page.tsx'
import { signInAgain, signOut } from './with-tokens.ts'

/** Covers the page until the person has signed in again. Text that was typed on the page is kept. */
export function Expired({ problem }: { problem: string }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const isPasted = oidcSettings() === undefined
  const show = () => dialog.current?.showModal()
  useEffect(show, [])
  return (
    <dialog ref={dialog} class="dialog" aria-label="Sign in again" onClose={show}>
      <div class="stack">
        <h2>Sign in again</h2>
        <Notice tone="bad">{problem}</Notice>
        <p>The page stays as it is, with what you have written. What waits for your sign-in goes on after it.</p>
        {isPasted && <TokenForm />}
        <div class="row">
          {!isPasted && (
            <button type="button" class="button main" onClick={() => void signInAgain()}>
              Sign in again
            </button>
          )}
          <button type="button" class="button plain" onClick={signOut}>
            Sign out
          </button>
        </div>
      </div>
    </dialog>
  )
}
