package shop

import scala.concurrent.{ExecutionContext, Future}
import shop.stock.Warehouse
import java.util.{List => JList, _}

sealed trait Priced[+T] extends Serializable with Product {
  type Currency
  val unit: String = "EUR"
  def total: Int
  def label(verbose: Boolean = false): String = s"$total"
}

case class Line(price: Int, count: Int = 1)(implicit val ctx: ExecutionContext) extends Document("line") with Priced[Int] {
  override def total: Int = price * count
  lazy val cached = Line.empty
  private var seen: Boolean = false
  def +(other: Line): Line = copy(price + other.price)
  def this(text: String) = this(text.toInt)
}

object Line {
  val Limit = 100
  def empty: Line = new Line(0)
  implicit class Ops(private val line: Line) extends AnyVal { def shout: String = line.label(true) }
  def ship[T <: Priced[_]](items: Seq[T], by: => Warehouse, tags: String*)(using ec: ExecutionContext): Future[Unit] = {
    def local(x: Int) = x
    Future(items.foreach(i => by.reserve(i)))
  }
}

abstract class Document(val id: String) { protected def save(): Unit }

enum Status(val word: String) extends java.lang.Enum[Status] {
  case Open extends Status("open")
  case Closed, Lost
  def next: Status = this
}

given ordering: Ordering[Line] = Ordering.by(_.price)
extension (line: Line) def describe(long: Boolean): String = line.label(long)
type Lines = List[Line]
def topLevel(n: Int): Int = n
