import { createOpenIdentify } from '../../services/gateway/identify.ts'
import { NO_METRICS } from '../../shared/metrics.ts'

/** What a gateway's app needs beside a broker, with everything that can be left out left out. */
export const APP_DEFAULTS = {
  basePath: '/v1',
  tools: [],
  identify: createOpenIdentify(),
  authentication: 'none',
  cors: { origins: [], allowHeaders: [], exposeHeaders: [] },
  trustProxy: false,
  hasExplorer: true,
  relay: { keepaliveMs: 15_000 },
  ledger: undefined,
  config: undefined,
  transcription: undefined,
  limiter: undefined,
  allowedHosts: undefined,
  metrics: NO_METRICS,
} as const
