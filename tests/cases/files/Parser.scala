package text

import scala.util.{Failure, Success, Try}

/** Reads pairs of a name and a number. */
object Parser {
  case class Pair(name: String, number: Int)

  def pair(line: String): Try[Pair] = line.split('=') match {
    case Array(name, number) if name.nonEmpty => Try(Pair(name.trim, number.trim.toInt))
    case other => Failure(new IllegalArgumentException(s"no pair: ${other.mkString("[", "=", "]")}"))
  }

  def all(lines: Seq[String]): Map[String, Int] =
    lines.flatMap(pair(_).toOption).map { case Pair(name, number) => name -> number }.toMap

  val help = """usage: "pairs" (
               |""".stripMargin
}
