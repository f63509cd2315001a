import type { Checks } from '../ops/readiness.ts'

type Readiness = { isRedisAway: boolean; isMember: boolean }

/** The readiness checks of every process of the cluster. Without Redis no process can renew its lease, so that alone is reported. */
export const clusterChecks = (readiness: () => Readiness): Checks => ({
  redis: () => !readiness().isRedisAway,
  membership: () => readiness().isRedisAway || readiness().isMember,
})
