require 'minitest/autorun'

class InvoiceTest < Minitest::Test
  def test_total
    assert Billing::Invoice.empty
  end
end
