import type { ComponentChildren } from 'preact'
import type { Resource } from '../api/resource.ts'
import { Notice } from './notice.tsx'

/** The server's error message, and a button for what the reader can do. */
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

/** Shows the data that was read. Errors are shown above it, and earlier data stays. */
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
