import { useSignal } from '@preact/signals'
import { Field } from '../parts/field.tsx'
import { Notice } from '../parts/notice.tsx'
import type { SignIn } from './session.ts'
import { startSignIn, withTokens } from './start.ts'
import './sign-in.css'

/** Stands in place of the console until somebody is signed in. */
export function SignInPage({ signIn }: { signIn: SignIn }) {
  return (
    <main class="sign-in">
      <div class="card padded stack">
        <h1>agent-engine</h1>
        {'problem' in signIn && signIn.problem !== undefined && <Notice tone="bad">{signIn.problem}</Notice>}
        {signIn.state === 'starting' && <p class="soft">Connecting …</p>}
        {signIn.state === 'handed-over' && <p>You are signed in again. You can close this window.</p>}
        {signIn.state === 'token' && <TokenForm />}
        {signIn.state === 'issuer' && (
          <button
            type="button"
            class="button main"
            onClick={() => void withTokens().then(({ signInAtIssuer }) => signInAtIssuer())}
          >
            Sign in
          </button>
        )}
        {signIn.state === 'failed' && (
          <button type="button" class="button" onClick={() => void startSignIn()}>
            Try again
          </button>
        )}
      </div>
    </main>
  )
}

export function TokenForm() {
  const token = useSignal('')
  const isBusy = useSignal(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    isBusy.value = true
    const { useToken } = await withTokens()
    await useToken(token.value.trim())
    isBusy.value = false
  }
  return (
    <form class="stack close" onSubmit={(event) => void submit(event)}>
      <Field label="Access token" hint="It stays in the memory of this tab and is gone after a reload.">
        {(id) => (
          <input
            id={id}
            class="input mono"
            type="password"
            autocomplete="off"
            value={token.value}
            onInput={({ currentTarget }) => {
              token.value = currentTarget.value
            }}
          />
        )}
      </Field>
      <button type="submit" class="button main" disabled={isBusy.value || token.value.trim() === ''}>
        Sign in
      </button>
    </form>
  )
}
