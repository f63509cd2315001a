import { Lines } from '../foreign.tsx'

/** The address that a request goes to, as it is read by whoever sends it, with its host set apart; and as it was written, where that differs. */
export function Address({ method, typed }: { method: string; typed: string }) {
  const url = URL.parse(typed)
  if (!url)
    return (
      <pre class="code">
        {method} <Lines text={typed} />
      </pre>
    )
  const [before, after] = [`${url.protocol}//${userOf(url)}`, url.pathname + url.search + url.hash]
  return (
    <>
      <pre class="code">
        {method} {before}
        <strong class="host">{url.host}</strong>
        {after}
      </pre>
      <p class="small">
        It goes to <strong class="host">{url.host}</strong>.
        {url.href !== typed && (
          <>
            {' '}
            As it was written:{' '}
            <code>
              <Lines text={typed} />
            </code>
          </>
        )}
      </p>
    </>
  )
}

const userOf = ({ username, password }: URL) =>
  username === '' && password === '' ? '' : `${username}${password === '' ? '' : `:${password}`}@`
