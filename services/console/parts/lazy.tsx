import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { tellFailure } from '../base/announce.ts'

/** A component whose code is loaded when it is shown for the first time. Until then `Before` is shown instead. */
export function lazy<Props>(
  load: () => Promise<FunctionComponent<Props>>,
  Before: FunctionComponent<Props> = () => null,
): FunctionComponent<Props> {
  const loaded = signal<{ View: FunctionComponent<Props> } | undefined>(undefined)
  // All components that show it use the same value here: a new value for each would redraw all of them.
  const start = () => {
    if (loaded.peek() === undefined) load().then((View) => (loaded.value ??= { View }), tellFailure)
  }
  return (props) => {
    useEffect(start, [])
    const View = loaded.value?.View ?? Before
    return <View {...props} />
  }
}
