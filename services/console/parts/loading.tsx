import type { ComponentChildren } from 'preact'
import type { Resource } from '../api/resource.ts'
import { Notice } from './notice.tsx'

/** The failure in the server's words, and the one thing to do about it. */
export const Failure = ({ error, onRetry }: { error: Error; onRetry(): void }) => (
  <Notice tone="bad">
    <div class="row">
      <span class="grow">{error.message}</span>
      <button type="button" class="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  </Notice>
)

type LoadedProps<T> = { from: Resource<T>; children: (data: T) => ComponentChildren }

/** Shows what was read. Failures stand above it, and what was read before stays. */
export function Loaded<T>({ from, children }: LoadedProps<T>) {
  const { data, error, isLoading } = from.state.value
  return (
    <>
      {error && <Failure error={error} onRetry={from.reload} />}
      {data === undefined && isLoading && <Waiting />}
      {data !== undefined && children(data)}
    </>
  )
}

const Waiting = () => (
  <div class="waiting" role="status">
    <span class="visually-hidden">Loading</span>
    <i />
    <i />
    <i />
  </div>
)
