import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { until } from './until.ts'

export type CollectedSpan = {
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  name: string
  service: string
  attributes: Record<string, unknown>
  isError: boolean
}

/** A collector of OpenTelemetry that takes OTLP over HTTP as JSON. */
export type TraceCollector = {
  /** The variables that send the traces of a process here. */
  env: Record<string, string>
  readonly spans: readonly CollectedSpan[]
  /** The requests that were not JSON, by their content type. */
  readonly otherTypes: readonly string[]
  wait(what: string, isWanted: (span: CollectedSpan) => boolean): Promise<CollectedSpan>
  close(): Promise<void>
}

type Value = { stringValue?: string; intValue?: number | string; boolValue?: boolean; arrayValue?: { values: Value[] } }
type Attribute = { key: string; value: Value }
type Body = {
  resourceSpans: {
    resource: { attributes: Attribute[] }
    scopeSpans: {
      spans: {
        traceId: string
        spanId: string
        parentSpanId?: string
        name: string
        attributes: Attribute[]
        status?: { code?: number }
      }[]
    }[]
  }[]
}

const ERROR = 2

export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = []
  const otherTypes: string[] = []
  const server = createServer((req, res) => {
    const handle = async () => {
      const type = String(req.headers['content-type'])
      const body = await text(req)
      if (type === 'application/json') spans.push(...spansOf(JSON.parse(body) as Body))
      else otherTypes.push(type)
      res.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? '{}' : '')
    }
    handle().catch((cause: unknown) => res.destroy(cause as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    },
    spans,
    otherTypes,
    async wait(what, isWanted) {
      const lastSeen = () => spans.map(({ name, service }) => `${service} ${name}`)
      await until(async () => spans.some(isWanted), { what, lastSeen })
      return spans.find(isWanted) as CollectedSpan
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function spansOf({ resourceSpans }: Body): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)['service.name'])
    return scopeSpans.flatMap((scope) =>
      scope.spans.map(({ traceId, spanId, parentSpanId, name, attributes, status }) => ({
        traceId,
        spanId,
        parentSpanId,
        name,
        service,
        attributes: valuesOf(attributes),
        isError: status?.code === ERROR,
      })),
    )
  })
}

const valuesOf = (attributes: Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))

function valueOf({ stringValue, intValue, boolValue, arrayValue }: Value): unknown {
  if (arrayValue) return arrayValue.values.map(valueOf)
  return stringValue ?? boolValue ?? Number(intValue)
}
