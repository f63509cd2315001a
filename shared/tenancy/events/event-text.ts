import { frameJson } from '../../kernel/json.ts'
import type { EventPosition, LoggedEvent, TenantEvent, TenantEventType } from './port.ts'

/** The position before the first event of an empty log. */
export const START: EventPosition = { generation: 0, n: 0 }

export const idOf = ({ generation, n }: EventPosition): string => `${generation}-${n}`

/** The position that an id encodes; `undefined` for a text of another form. */
export function positionOf(id: string): EventPosition | undefined {
  const [, generation, n] = /^(\d{1,15})-(\d{1,15})$/.exec(id) ?? []
  return generation === undefined ? undefined : { generation: Number(generation), n: Number(n) }
}

/** An event as a log stores it: its type, and the JSON text for its readers. */
export const storedText = ({ type, at, data }: TenantEvent): string => `${type} ${frameJson({ ...data, at })}`

/** The SSE frame of a stored event (D16a). */
export function loggedEvent(position: EventPosition, stored: string): LoggedEvent {
  const space = stored.indexOf(' ')
  const type = stored.slice(0, space) as TenantEventType
  return { position, type, frame: frameOf(position, type, stored.slice(space + 1)) }
}

/** Tells a reader that events are missing before this position: what it shows must be read again (D16c). */
export const resetFrame = (position: EventPosition): string => frameOf(position, 'reset', '{}')

const frameOf = (position: EventPosition, type: string, json: string): string =>
  `id: ${idOf(position)}\nevent: ${type}\ndata: ${json}\n\n`
