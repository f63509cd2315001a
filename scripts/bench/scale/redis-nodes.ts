import { median } from '../statistics.ts'

/** The slots of a Redis Cluster, which its nodes have in equal parts. */
const SLOTS = 16_384
const DRAWS = 101
const FIRST_EPOCH = 1_700_000_000

/** A node is full at this part of its core: the rest is for bursts. */
const NODE_BUSY = 0.7

/**
 * The load of the fullest node to the mean, where each gateway's channel is at one node: by far the most messages go to gateways. The median over
 * draws of the epochs, which name the channels.
 */
export function spreadOfChannels({ gateways, nodes, random }: Spreading): number {
  const draws = Array.from({ length: DRAWS }, () => {
    const first = FIRST_EPOCH + Math.floor(random() * FIRST_EPOCH)
    const loads = Array.from({ length: nodes }, () => 0)
    for (let n = 0; n < gateways; n++) {
      const node = Math.floor((slotOf(`ae:gw:${first + n}`) * nodes) / SLOTS)
      loads[node] = (loads[node] ?? 0) + 1
    }
    return (Math.max(...loads) * nodes) / gateways
  })
  return median(draws)
}

type Spreading = { gateways: number; nodes: number; random: () => number }

/** The nodes that so much work for Redis needs, and the load of the fullest in cores. `undefined` where gateways are too few to be divided so far. */
export function nodesFor({ cores, gateways, random }: { cores: number; gateways: number; random: () => number }) {
  for (let nodes = 1; nodes <= gateways; nodes++) {
    const fullest = (cores / nodes) * spreadOfChannels({ gateways, nodes, random })
    if (fullest <= NODE_BUSY) return { nodes, fullest }
  }
  return undefined
}

/** CRC16 (XMODEM) of a key without a hash tag, as Redis Cluster divides keys and channels among the slots. */
export function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
    crc &= 0xffff
  }
  return crc % SLOTS
}
