import type { ReadAddress } from '../../../../shared/reading/address.ts'

type AddressProps = { method: string; written: string; address: ReadAddress | undefined }

/** The address that a request goes to, as it is read by whoever sends it, with its host set apart; and as it was written, where that differs. */
export function Address({ method, written, address }: AddressProps) {
  if (!address)
    return (
      <pre class="code">
        {method} <span class="exact">{written}</span>
      </pre>
    )
  const { before, host, after, isAsWritten } = address
  return (
    <>
      <pre class="code">
        {method} {before}
        <strong class="host">{host}</strong>
        {after}
      </pre>
      <p class="small">
        It goes to <strong class="host">{host}</strong>.
        {!isAsWritten && (
          <>
            {' '}
            As it was written: <code class="exact">{written}</code>
          </>
        )}
      </p>
    </>
  )
}
