import { createEventReporter } from '../../services/worker/event-reporter.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'
import { SILENT_LOG } from './silent-log.ts'

/** Reports to nobody. */
export const NO_REPORTER = createEventReporter({
  events: NO_EVENTS,
  outbox: undefined,
  audit: undefined,
  log: SILENT_LOG,
})
