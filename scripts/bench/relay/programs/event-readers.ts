import { EventReaders, type ReadersOrder, type ReportOrder } from '../../events/event-readers.ts'
import { answerCalls } from './answer.ts'

/** A process that reads the events of a tenant. ../../events/measure.ts calls it. */
const readers = new EventReaders()
answerCalls(
  { port: 0 },
  {
    open: (order: ReadersOrder) => readers.open(order),
    report: (order: ReportOrder) => readers.report(order),
  },
)
