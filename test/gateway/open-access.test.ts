import { expect } from 'chai'
import { showOpenAccess } from '../../services/gateway/open-http.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { type GaugeValue, NO_METRICS } from '../../shared/kernel/metrics.ts'
import { openAccessWarning } from '../../shared/platform/config/auth.ts'
import { until } from '../support/until.ts'

const OPEN = { host: '0.0.0.0', publishedAddress: undefined, apiToken: undefined, oidcIssuer: undefined }

describe('an API that is open to the network', () => {
  it('api.md Authentication 5: is one that others can reach, where no token is required', () => {
    expect(openAccessWarning(OPEN, 'cluster')).to.match(/^HOST=0\.0\.0\.0 without OIDC_ISSUER: /)
    expect(openAccessWarning({ ...OPEN, publishedAddress: '192.0.2.1' }, 'standalone')).to.match(
      /^PUBLISHED_ADDRESS=192\.0\.2\.1 without API_TOKEN or OIDC_ISSUER: /,
    )
    const closed = [
      { host: '127.0.0.1' },
      { publishedAddress: '127.0.0.1' },
      { apiToken: 't' },
      { oidcIssuer: 'https://i' },
    ]
    for (const how of closed) expect(openAccessWarning({ ...OPEN, ...how }, 'standalone')).to.equal(undefined)
  })

  it('is in the log again and again, and in the metrics', async () => {
    const lines: string[] = []
    const gauges: Record<string, () => GaugeValue | Promise<GaugeValue>> = {}
    const metrics = {
      ...NO_METRICS,
      gauge: (name: string, read: () => GaugeValue | Promise<GaugeValue>) => void (gauges[name] = read),
    }
    const log = createLog({ level: 'warn', write: (line) => lines.push(line) })
    const shown = showOpenAccess('everybody can', { log, metrics, everyMs: 5 })
    expect(lines).to.have.length(1)
    expect(await gauges['open_to_network']?.()).to.equal(1)
    await until(() => lines.length >= 3, { what: 'the warning to be repeated' })
    shown.close()
    showOpenAccess(undefined, { log, metrics, everyMs: 5 })
    expect(await gauges['open_to_network']?.()).to.equal(0)
  })
})
