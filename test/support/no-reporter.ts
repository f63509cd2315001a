import { createEventReporter } from '../../services/worker/event-reporter.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { NO_EVENTS } from '../../shared/tenancy/events/port.ts'

/** Reports to nobody. */
export const NO_REPORTER = createEventReporter({
  events: NO_EVENTS,
  outbox: undefined,
  audit: undefined,
  log: createLog({ level: 'error', write: () => {} }),
})
