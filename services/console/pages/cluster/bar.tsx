type BarProps = { used: number; of: number; text: string }

/** From this part on a bar warns. */
const HIGH = 0.85

/** A part of a whole, as a bar and as words. */
export const Bar = ({ used, of, text }: BarProps) => {
  const share = of > 0 ? Math.min(1, used / of) : 0
  return (
    <span class="load-bar">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect class={share >= HIGH ? 'high' : ''} width={share * 100} height="6" />
      </svg>
      <span class="number">{text}</span>
    </span>
  )
}
