import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

/** The media types of pictures. SVG files can contain scripts, so they can only be saved. */
const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
/** Decoding a larger picture would take too long, and no model receives one. */
const MOST_BYTES = 5 * 1_024 * 1_024
/** The longer side, in pixels of the screen: a small copy of the picture is all that the page keeps. */
const SIDE = 480

/** Whether a file is shown as a picture. */
export const isPicture = ({ media_type: type, bytes }: { media_type: string; bytes: number }): boolean =>
  PICTURES.has(type) && bytes <= MOST_BYTES

/** A picture, drawn from its bytes when it becomes visible. So it needs no URL that the page's policy would have to allow. */
export function Thumbnail({ name, load }: { name: string; load(): Promise<Blob> }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const isBroken = useSignal(false)
  useEffect(() => {
    const { current } = canvas
    if (!current) return
    const observer = new IntersectionObserver((seen) => {
      if (!seen.some(({ isIntersecting }) => isIntersecting)) return
      observer.disconnect()
      drawOn(current, load).catch(() => (isBroken.value = true))
    })
    observer.observe(current)
    return () => observer.disconnect()
  }, [])
  if (isBroken.value) return null
  return <canvas ref={canvas} class="thumbnail" role="img" aria-label={name} width={1} height={1} />
}

async function drawOn(canvas: HTMLCanvasElement, load: () => Promise<Blob>): Promise<void> {
  const picture = await createImageBitmap(await load())
  const scale = Math.min(1, SIDE / Math.max(picture.width, picture.height))
  canvas.width = Math.max(1, Math.round(picture.width * scale))
  canvas.height = Math.max(1, Math.round(picture.height * scale))
  canvas.getContext('2d')?.drawImage(picture, 0, 0, canvas.width, canvas.height)
  picture.close()
}
