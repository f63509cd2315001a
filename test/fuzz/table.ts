import type { Case, Fixtures } from './case.ts'
import { bodies } from './cases/bodies.ts'
import { fields } from './cases/fields.ts'
import { flows } from './cases/flows.ts'
import { framing } from './cases/framing.ts'
import { hosts, keys, odd, origins, requestIds, types } from './cases/headers.ts'
import { ids } from './cases/ids.ts'
import { methods } from './cases/methods.ts'
import { paths } from './cases/paths.ts'
import { pipelines } from './cases/pipelines.ts'
import { plans } from './cases/plans.ts'
import { queries } from './cases/queries.ts'
import { work } from './cases/work.ts'

/** Every hand-written case, in the order of the tables. */
export const casesFor = (at: Fixtures): Case[] => [
  ...paths,
  ...methods(at),
  ...framing,
  ...hosts,
  ...keys,
  ...origins,
  ...types,
  ...requestIds,
  ...odd,
  ...bodies,
  ...fields(at),
  ...ids(at),
  ...queries(at),
  ...pipelines(at),
  ...flows(at),
  ...plans(at),
  ...work,
]
